/**
 * Wrong conditions that change nothing that can be seen, and why. `source` is the line that holds the condition, as it
 * stands in the file; `replacement` what the mutation puts in.
 */
export const equivalents = [];
