//! Typed indices into the tables of a [`Dag`](crate::Dag).

warploom_lang::define_ids! {
    /// An input or a Func. Inputs come first, then Funcs, with producers before their consumers.
    NodeId;
    /// A stage. Stages are numbered over the whole pipeline, by node and then by order of definition.
    StageId;
    /// An edge. Edges are numbered by consumer, then by producer.
    EdgeId;
}
