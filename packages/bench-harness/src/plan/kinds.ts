/** Machines whose records are condensed in this package, the usual one first. */
export const machineNames = ['h200', 'cpu'] as const;
export type MachineName = (typeof machineNames)[number];

/** What of a layer is made again in the backward pass: nothing, all of it, or all but what attention gave. */
export const recomputations = ['none', 'block', 'attention-kept'] as const;
export type Recomputation = (typeof recomputations)[number];
