import type { DType, Shape, Tensor } from '../../../src/index.ts';
import type { TensorInput } from '../../differential/programs/tensor-input.ts';
import type { World } from './world.ts';

/** A tensor of a program: given to it, found by it, or made by an instruction. */
export interface Register {
  readonly id: number;
  /** Its name in the listing. */
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
  /** False where several elements share memory, or ops keep what is written. */
  readonly isWritable: boolean;
  /** Whether a backward pass from it would reach a parameter. */
  readonly isTracked: boolean;
}

export interface Instruction {
  /** The registers that it reads or writes, by their ids. */
  readonly operands: readonly number[];
  /** What it makes; null if nothing. */
  readonly makes: Register | null;
  /** Its text in the listing, given the operands' names. */
  readonly text: (names: readonly string[]) => string;
  readonly run: (operands: readonly Tensor[], world: World) => Tensor | null;
  /** Whether compiled code may refuse it, as it may refuse what leaves a history. */
  readonly mayBeRefused: boolean;
}

/** What an argument, or a tensor that the program finds, is in each world. */
export interface GivenTensor {
  readonly register: Register;
  readonly input: TensorInput;
  /** Rows of a table; null for numbers that are not indices. */
  readonly indicesBelow: number | null;
}

/** The memory layout of parameters, or of their gradients when the first call begins. */
export type Placement = 'apart' | 'one buffer' | 'one buffer, not aligned';

/** What the host does between two calls. */
export type HostAction = 'writes parameters' | 'writes buffers' | 'forgets gradients';

/** A step that is called several times, and compiled. Its seed decides all of it. */
export interface StepProgram {
  readonly seed: number;
  readonly arguments: readonly GivenTensor[];
  readonly buffers: readonly GivenTensor[];
  readonly parameters: readonly GivenTensor[];
  readonly parameterPlacement: Placement;
  /** Null where there are no gradients yet. */
  readonly gradientPlacement: Placement | null;
  /** Whether no instruction is recorded for a backward pass. */
  readonly isWithoutGrad: boolean;
  readonly instructions: readonly Instruction[];
  /** The registers that it gives. */
  readonly results: readonly number[];
  /** Keyed by the call that they precede. */
  readonly hostActions: ReadonlyMap<number, HostAction>;
  /** One of those that the world was given; null for none. */
  readonly trainer: number | null;
}

/** A program as a person would write it. */
export function listingOf(program: StepProgram): string {
  const { instructions, hostActions, results } = program;
  const given = (title: string, tensors: readonly GivenTensor[]) =>
    tensors
      .filter(({ register }) => isUsed(program, register.id))
      .map(({ register, input }) => `  ${title} ${register.name}: ${describe(input)}`);
  const names = new Map(registersOf(program).map(({ id, name }) => [id, name]));
  const nameOf = (id: number) => names.get(id)!;
  return [
    `seed ${program.seed}${program.isWithoutGrad ? ', without gradients' : ''}`,
    ...given('argument', program.arguments),
    ...given('buffer', program.buffers),
    ...given(`parameter (${program.parameterPlacement})`, program.parameters),
    ...(program.gradientPlacement ? [`  gradients are there: ${program.gradientPlacement}`] : []),
    ...instructions.map(({ operands, makes, text }) => {
      const line = text(operands.map(nameOf));
      return makes ? `  ${makes.name} = ${line}` : `  ${line}`;
    }),
    `  return [${results.map(nameOf).join(', ')}]`,
    ...[...hostActions].map(([call, action]) => `  before call ${call} the host ${action}`),
  ].join('\n');
}

function describe({ dtype, baseShape, views }: TensorInput): string {
  return `${dtype} [${baseShape.join(', ')}]${views.map(({ torch }) => torch).join('')}`;
}

function isUsed({ instructions, results }: StepProgram, id: number): boolean {
  return results.includes(id) || instructions.some(({ operands }) => operands.includes(id));
}

/** All that a program works on. */
export function registersOf(program: StepProgram): Register[] {
  const given = [...program.arguments, ...program.buffers, ...program.parameters];
  return [
    ...given.map(({ register }) => register),
    ...program.instructions.flatMap(({ makes }) => makes ?? []),
  ];
}
