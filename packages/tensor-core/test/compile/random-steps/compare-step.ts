import { isDeepStrictEqual } from 'node:util';
import * as t from '../../../src/index.ts';
import type { Device, Tensor } from '../../../src/index.ts';
import { unitRoundoff } from '../../op-cases/support/samples.ts';
import type { StepProgram } from './step-program.ts';
import { type Trainer, World } from './world.ts';
import { optionsOf } from '../random-options.ts';

/** The first is captured, the others are replayed; they must see what the host does between them. */
const calls = 5;

/**
 * The outcome of running a program eagerly and compiled. `refused`: eager code throws, so there is nothing to compare.
 * `rounds`: on the CPU, where ONNX Runtime's order of addition depends on an operand's address, which compiled code may change,
 * all numbers agree up to that. `breaks`: a kernel fails, after which the device is of no more use.
 */
export type StepResult = 'same' | 'differs' | 'refused' | 'rounds' | 'breaks';

export interface StepOutcome {
  readonly kind: StepResult;
  /** What differs, and where; otherwise why it is refused. */
  readonly message: string;
  /** The ops that the compiled program ran. */
  readonly ops: readonly string[];
}

interface Explained {
  explain(): readonly t.CompileExplanation[];
}

type Numbers = Record<string, readonly unknown[]>;

export function compareStep(program: StepProgram, device: Device, trainers: readonly Trainer[]): StepOutcome {
  return t.scope(() => {
    let expected: Numbers[];
    try {
      expected = runEagerly(program, new World(program, device, trainers));
    } catch (error) {
      const kind = error instanceof t.DeviceError ? 'breaks' : 'refused';
      return { kind, message: (error as Error).message, ops: [] };
    }
    const world = new World(program, device, trainers);
    const step = t.compile((...given: Tensor[]) => world.run(given), optionsOf(program, device));
    try {
      const difference = firstDifference(expected, program, world, step);
      if (difference === null) return { kind: 'same', message: '', ops: opsOf(step) };
      const isRounding = difference.isSmall && device.type === 'cpu';
      return { kind: isRounding ? 'rounds' : 'differs', message: difference.where, ops: opsOf(step) };
    } catch (error) {
      const isRefusal =
        error instanceof t.CompileError && program.instructions.some((each) => each.mayBeRefused);
      if (isRefusal) return { kind: 'refused', message: error.message, ops: [] };
      const kind = error instanceof t.DeviceError ? 'breaks' : 'differs';
      return { kind, message: `compiled, throws ${(error as Error).message}`, ops: opsOf(step) };
    } finally {
      step.dispose();
    }
  });
}

/** The numbers of each call. */
function runEagerly(program: StepProgram, world: World): Numbers[] {
  return Array.from({ length: calls }, (_, call) => {
    actBefore(program, world, call);
    return numbersOf(world, call, (given) => world.run(given));
  });
}

function actBefore({ hostActions }: StepProgram, world: World, call: number): void {
  const action = hostActions.get(call);
  if (action) world.act(action);
}

function firstDifference(
  expected: readonly Numbers[],
  program: StepProgram,
  world: World,
  step: Explained & ((...given: Tensor[]) => Tensor[]),
): Difference | null {
  for (const [call, numbers] of expected.entries()) {
    actBefore(program, world, call);
    const given = numbersOf(world, call, (args) => step(...args));
    const difference = differenceOf(numbers, given, addsTables(step));
    if (difference) return { ...difference, where: `call ${call}: ${difference.where}` };
  }
  return null;
}

/** The numbers of everything that a call gives and leaves. */
function numbersOf(world: World, call: number, run: (given: Tensor[]) => Tensor[]): Numbers {
  const { given, wholes } = world.argumentsOf(call);
  return t.scope(() => {
    const results = run(given);
    const histories = [...given, ...world.buffers].map(walkHistory);
    const told = Object.entries({ results, arguments: wholes, ...world.state });
    const numbers = told.map(([name, tensors]) => [
      name,
      tensors.map((x) => x && [x.dtype, x.shape.join(), ...x.toFlatArray()]),
    ]);
    return Object.fromEntries([...numbers, ['histories', histories]]);
  });
}

/** Whether something has a history that leads anywhere: the parameters' gradients show where. */
function walkHistory(x: Tensor): [boolean, string] {
  if (!x.requiresGrad) return [false, ''];
  try {
    t.sum(x).backward();
    return [true, 'walked'];
  } catch (error) {
    return [true, (error as Error).name];
  }
}

interface Difference {
  readonly where: string;
  /** Whether it could be one of rounding. */
  readonly isSmall: boolean;
}

/** Where the numbers of one call differ first; null where they do not. Zeros may differ in sign if `zerosMayDiffer`. */
function differenceOf(expected: Numbers, given: Numbers, zerosMayDiffer: boolean): Difference | null {
  const plain = (value: unknown) => (zerosMayDiffer && value === 0 ? 0 : value);
  for (const [name, list] of Object.entries(expected)) {
    for (const [i, numbers] of list.entries()) {
      const other = given[name]![i];
      if (isDeepStrictEqual(numbers, other)) continue;
      if (!Array.isArray(numbers) || !Array.isArray(other))
        return { where: `${name}[${i}] is there on one side alone`, isSmall: false };
      const at = numbers.findIndex((value, place) => !Object.is(plain(value), plain(other[place])));
      if (at < 0) continue;
      // Preceded by the dtype and the shape.
      const where = `${name}[${i}] at ${at - 2}: ${String(other[at])} where eager code has ${String(numbers[at])}`;
      return { where, isSmall: areClose(numbers, other) };
    }
  }
  return null;
}

/** Whether all numbers of two tensors are equal up to some roundings. */
function areClose([dtype, ...numbers]: unknown[], [, ...others]: unknown[]): boolean {
  const bound = 64 * (unitRoundoff[dtype as t.DType] ?? 0);
  return numbers.every((a, i) => {
    const b = others[i];
    if (typeof a !== 'number' || typeof b !== 'number') return Object.is(a, b);
    return Object.is(a, b) || Math.abs(a - b) <= bound * Math.max(1, Math.abs(a), Math.abs(b));
  });
}

/** In rows that were not looked up, -0 stays -0; see `accumulateEmbeddings`. */
function addsTables(step: Explained): boolean {
  return opsOf(step).some((op) => op.startsWith('fused_embeddingBackward_add_'));
}

function opsOf(step: Explained): string[] {
  return step.explain().flatMap(({ table }) => table.map(({ op }) => op));
}
