import type { Instruction, StepProgram } from './step-program.ts';

/** The program reduced to the fewest instructions, results and host actions that still fail. */
export function shrinkStep(program: StepProgram, fails: (smaller: StepProgram) => boolean): StepProgram {
  for (let smallest = program; ;) {
    const smaller = waysToShrink(smallest).find(fails);
    if (!smaller) return smallest;
    smallest = smaller;
  }
}

function waysToShrink(program: StepProgram): StepProgram[] {
  const { instructions, results, hostActions } = program;
  const withoutInstruction = instructions.toReversed().map((each) => without(program, each));
  const withFewerResults = results.map((id) => ({
    ...program,
    results: results.filter((other) => other !== id),
  }));
  const withoutAction = [...hostActions.keys()].map((call) => ({
    ...program,
    hostActions: new Map([...hostActions].filter(([other]) => other !== call)),
  }));
  const plain = program.gradientPlacement === null ? [] : [{ ...program, gradientPlacement: null }];
  const apart =
    program.parameterPlacement === 'apart' ? [] : [{ ...program, parameterPlacement: 'apart' as const }];
  return [...withoutInstruction, ...withFewerResults, ...withoutAction, ...plain, ...apart];
}

/** Without an instruction and everything that needs its result. */
function without(program: StepProgram, left: Instruction): StepProgram {
  const gone = new Set<number>();
  const instructions = program.instructions.filter((each) => {
    const isLeft = each === left || each.operands.some((id) => gone.has(id));
    if (isLeft && each.makes) gone.add(each.makes.id);
    return !isLeft;
  });
  const results = program.results.filter((id) => !gone.has(id));
  return { ...program, instructions, results };
}
