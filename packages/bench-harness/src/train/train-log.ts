import { closeSync, existsSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ifPossible } from '../attempt.ts';

const number = z.number().nullable();

/** A step that was made, from 0 on, and what was found; null for what is not finite. */
const stepLine = z.object({
  step: z.number(),
  loss: number,
  gradientNorm: number,
  learningRate: z.number(),
  /** Since the step before, on the host. */
  durationMs: z.number(),
});
/** The loss on the validation split after so many steps. */
const validationLine = z.object({ step: z.number(), validationLoss: number });

export type StepLine = z.infer<typeof stepLine>;
export type ValidationLine = z.infer<typeof validationLine>;
export type LogLine = StepLine | ValidationLine;

/** The log of a training: JSON Lines, which each line is written to at once. */
export class TrainLog implements Disposable {
  readonly #file: number;

  /** Goes on after what was made by `step`: lines of later steps, which are made again, are dropped, as is one that was torn. */
  constructor(folder: string, step: number) {
    const path = logPath(folder);
    if (existsSync(path)) {
      const kept = readTrainLog(folder).filter((line) => isBefore(line, step));
      writeFileSync(`${path}.new`, kept.map((line) => `${JSON.stringify(line)}\n`).join(''));
      renameSync(`${path}.new`, path);
    }
    this.#file = openSync(path, 'a');
  }

  write(line: LogLine): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}

export function logPath(folder: string): string {
  return join(folder, 'log.jsonl');
}

/** The lines of a training's log; what was torn is left out. */
export function readTrainLog(folder: string): LogLine[] {
  const text = readFileSync(logPath(folder), 'utf8');
  return text.split('\n').flatMap((line) => {
    const value = ifPossible(() => JSON.parse(line) as unknown);
    const parsed = z.union([stepLine, validationLine]).safeParse(value);
    return parsed.success ? [parsed.data] : [];
  });
}

export function isStep(line: LogLine): line is StepLine {
  return 'loss' in line;
}

function isBefore(line: LogLine, step: number): boolean {
  return isStep(line) ? line.step < step : line.step <= step;
}
