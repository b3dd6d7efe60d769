//! Typed indices into the tables of a [`Dag`](crate::Dag) and of a [`Plan`](crate::schedule::Plan).

warploom_lang::define_ids! {
    /// An input or a Func. Inputs come first, then the Funcs, producers before their consumers.
    NodeId;
    /// A stage, numbered over the whole pipeline: by node, then by the order of definition.
    StageId;
    /// An edge, numbered by its consumer, then by its producer.
    EdgeId;
}

warploom_lang::define_ids! {
    /// A kernel of a [`Plan`](crate::schedule::Plan), in the order of the text.
    KernelId;
    /// A stage or staged input of a [`Plan`](crate::schedule::Plan), in the order of the text.
    NestId;
    /// A loop around kernels or over a block of a [`Plan`](crate::schedule::Plan), in the order of the text.
    LoopId;
}
