/** What the user asked cannot be done as asked: shown without a stack, exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A function of this package was given what it does not take: a mistake in a program, not of its user. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError';
}

/** A record was measured and could not be kept: the disk is full, say, or the file was removed. */
export class ResultsFileError extends Error {
  override readonly name = 'ResultsFileError';
}

/** A rank that a cell started failed; its last words are the message. */
export class RankError extends Error {
  override readonly name = 'RankError';
  readonly code: string | undefined;

  /** Of what a rank wrote to stderr; running out of memory is kept apart. */
  constructor(message: string) {
    super(message);
    this.code = message.includes('OutOfMemoryError') ? 'OUT_OF_MEMORY' : undefined;
  }
}

/** Exit codes of the command. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  outOfMemory: 3,
  interrupted: 130,
} as const;
