/**
 * What has happened to watched storages, those that compiled programs stand on, and to the leaves in them. A program that
 * finds a count as it left it need not look at each of its hundreds of parameters again.
 */
export const watchedChanges = {
  /** Handles that went, leaves that began or ceased to require a gradient, memory that was exchanged for other. */
  handles: 0,
  /** Gradients that came to leaves, or went, hooks for them, and buffers that they are to lie in. */
  gradients: 0,
  /** Writes. */
  writes: 0,
};
