/**
 * Counts what happens to watched storages, those that compiled functions depend on, and to the leaves in them. A
 * specialization that finds a count unchanged need not check each of its hundreds of parameters again.
 */
export const watchedChanges = {
  /** Handles that were disposed of, leaves that began or ceased to require a gradient, buffers that were exchanged. */
  handles: 0,
  /** Gradients that leaves got or lost, hooks for them, and buffers for them. */
  gradients: 0,
  /** Writes. */
  writes: 0,
};
