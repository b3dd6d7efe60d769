//! Typed indices into the tables of a [`Dag`](crate::Dag) and of a [`Plan`](crate::schedule::Plan).

warploom_lang::define_ids! {
    /// An input or a Func. Inputs come first, then Funcs, with producers before their consumers.
    NodeId;
    /// A stage. Stages are numbered over the whole pipeline, by node and then by order of definition.
    StageId;
    /// An edge. Edges are numbered by consumer, then by producer.
    EdgeId;
}

warploom_lang::define_ids! {
    /// A kernel of a [`Plan`](crate::schedule::Plan), numbered in text order.
    KernelId;
    /// A stage or staged input of a [`Plan`](crate::schedule::Plan), numbered in text order.
    NestId;
    /// A loop of a [`Plan`](crate::schedule::Plan), around kernels or over a block, numbered in text
    /// order.
    LoopId;
}
