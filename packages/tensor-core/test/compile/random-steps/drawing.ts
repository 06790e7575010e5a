import type { DType, Shape, Tensor } from '../../../src/index.ts';
import type { RandomSource } from '../../differential/programs/random-source.ts';
import type { Instruction, Register } from './step-program.ts';
import type { World } from './world.ts';

/** Kinds of programs that can be left out of those that are drawn. */
export const kinds = ['strided-arguments', 'written-arguments', 'histories'] as const;
export type Kind = (typeof kinds)[number];

/** What an instruction is drawn as. */
export interface Drawn {
  readonly operands: readonly Register[];
  readonly text: (names: readonly string[]) => string;
  readonly run: (operands: readonly Tensor[], world: World) => Tensor | null;
  /** Of its result; without a shape it makes nothing. The dtype defaults to the first operand's. */
  readonly shape?: Shape;
  readonly dtype?: DType;
  readonly isWritable?: boolean;
  /** Defaults to that of the operands. */
  readonly isTracked?: boolean;
  readonly mayBeRefused?: boolean;
}

/** Most operands are drawn from this many latest values. */
const latest = 5;

/** A program that is being drawn: its state so far. */
export class Drawing {
  readonly random: RandomSource;
  readonly rows: number;
  readonly columns: number;
  readonly dtype: DType;
  readonly isWithoutGrad: boolean;
  readonly leftOut: ReadonlySet<Kind>;
  /** Whether products of low precision are drawn, which compiled code rounds less often than eager code. */
  readonly hasLowProducts: boolean;
  readonly registers: Register[] = [];
  readonly instructions: Instruction[] = [];
  readonly parameters: Register[] = [];
  readonly #arguments = new Set<number>();

  constructor(
    random: RandomSource,
    shape: { readonly rows: number; readonly columns: number },
    kind: Pick<Drawing, 'dtype' | 'isWithoutGrad' | 'leftOut' | 'hasLowProducts'>,
  ) {
    this.random = random;
    this.rows = shape.rows;
    this.columns = shape.columns;
    this.dtype = kind.dtype;
    this.isWithoutGrad = kind.isWithoutGrad;
    this.leftOut = kind.leftOut;
    this.hasLowProducts = kind.hasLowProducts;
  }

  /** Adds a tensor that is an argument or captured. */
  given(
    role: 'argument' | 'buffer' | 'parameter',
    tensor: Pick<Register, 'shape' | 'dtype' | 'isWritable'>,
  ): Register {
    const number = this.registers.filter(({ name }) => name.startsWith(role[0]!)).length;
    const register: Register = {
      ...tensor,
      id: this.registers.length,
      name: `${role[0]}${number}`,
      isTracked: role === 'parameter',
    };
    this.registers.push(register);
    if (role === 'parameter') this.parameters.push(register);
    if (role === 'argument') this.#arguments.add(register.id);
    return register;
  }

  /** A register for which `isFit` holds, rather a late one; null without any. */
  pick(isFit: (register: Register) => boolean = isFloat): Register | null {
    const fit = this.registers.filter(isFit);
    if (fit.length === 0) return null;
    return this.random.chance(0.7) ? this.random.pick(fit.slice(-latest)) : this.random.pick(fit);
  }

  pickLike(shape: Shape, dtype: DType): Register | null {
    return this.pick((other) => other.dtype === dtype && isSame(other.shape, shape));
  }

  /** One that may be written here: not an argument, where those are excluded. */
  pickWritable(isFit: (register: Register) => boolean = isFloat): Register | null {
    const isLeftOut = this.leftOut.has('written-arguments');
    return this.pick(
      (register) =>
        register.isWritable && isFit(register) && !(isLeftOut && this.#arguments.has(this.#rootOf(register))),
    );
  }

  add(drawn: Drawn): Register | null {
    const { operands, shape, dtype, text, run, isWritable = true, mayBeRefused = false } = drawn;
    const isTracked = drawn.isTracked ?? (!this.isWithoutGrad && operands.some((each) => each.isTracked));
    const id = this.registers.length;
    const makes: Register | null = shape
      ? { id, name: `r${id}`, shape, dtype: dtype ?? operands[0]!.dtype, isWritable, isTracked }
      : null;
    this.instructions.push({ operands: operands.map((each) => each.id), makes, text, run, mayBeRefused });
    if (makes) this.registers.push(makes);
    return makes;
  }

  /** The first operand of the first operand and so on: a view's is what it is a view of. */
  #rootOf({ id }: Register): number {
    const maker = this.instructions.find(({ makes }) => makes?.id === id);
    const first = maker?.operands[0];
    return first === undefined ? id : this.#rootOf(this.registers[first]!);
  }
}

export function isFloat({ dtype }: Pick<Register, 'dtype'>): boolean {
  return dtype.startsWith('float') || dtype === 'bfloat16';
}

export function isSame(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((length, i) => length === b[i]);
}
