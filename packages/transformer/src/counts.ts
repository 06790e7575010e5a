import { checkNumber } from '@roofline/tensor-core';

/** Throws a RooflineError (code RANGE) unless `value`, which `what` names, is a whole number of one or more. */
export function checkCount(owner: string, what: string, value: number): void {
  checkNumber(owner, what, value, 'a whole number of one or more', isCount);
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1;
}
