//! Typed indices into the tables of a [`Dag`](crate::Dag).

warploom_lang::define_ids! {
    /// An input or a Func. Inputs come first, then the Funcs, producers before their consumers.
    NodeId;
    /// A stage, numbered over the whole pipeline: by node, then by the order of definition.
    StageId;
    /// An edge, numbered by its consumer, then by its producer.
    EdgeId;
}
