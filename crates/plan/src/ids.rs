//! Typed indices into the tables of a [`Plan`](crate::Plan).

warploom_lang::define_ids! {
    /// A kernel of a [`Plan`](warploom_plan::Plan), numbered in text order.
    KernelId;
    /// A stage or staged input of a [`Plan`](warploom_plan::Plan), numbered in text order.
    NestId;
    /// A loop of a [`Plan`](warploom_plan::Plan), around kernels or over a block, numbered in text
    /// order.
    LoopId;
}
