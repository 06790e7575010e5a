import { DeviceError } from '../base/errors.ts';

/** A library of NVIDIA's is here and cannot be used; `diagnose` tells the problem and the remedy apart. */
export class UnusableLibraryError extends DeviceError {
  readonly problem: string;
  readonly remedy: string;

  constructor(problem: string, remedy: string) {
    super(`${problem} ${remedy}`);
    this.problem = problem;
    this.remedy = remedy;
  }
}
