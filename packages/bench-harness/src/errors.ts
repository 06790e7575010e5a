/** What the user asked cannot be done as asked: shown without a stack, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  outOfMemory: 3,
  interrupted: 130,
} as const;
