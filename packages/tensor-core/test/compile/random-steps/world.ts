import * as t from '../../../src/index.ts';
import type { Device, Tensor } from '../../../src/index.ts';
import { encode } from '../../differential/programs/host-data.ts';
import { RandomSource } from '../../differential/programs/random-source.ts';
import { drawValues } from '../../differential/programs/values.ts';
import type { GivenTensor, HostAction, Placement, StepProgram } from './step-program.ts';

/** What updates parameters by their gradients. */
export interface Trainer {
  /** Its name in the listing. */
  readonly text: string;
  /** For one world; the result makes one step after a backward pass from `loss`, and drops the gradients or not. */
  readonly make: (parameters: readonly Tensor[]) => (loss: Tensor) => void;
}

/** The tensors of a program for one way to run it: eager and compiled code have one world each, with the same numbers. */
export class World {
  readonly parameters: readonly Tensor[];
  readonly train: (loss: Tensor) => void;
  readonly #program: StepProgram;
  readonly #device: Device;
  readonly #buffers: readonly Placed[];
  /** Buffers that hold several parameters or gradients. */
  readonly #flat: Tensor[] = [];

  constructor(program: StepProgram, device: Device, trainers: readonly Trainer[]) {
    this.#program = program;
    this.#device = device;
    this.#buffers = program.buffers.map((each) => this.#place(each, 0));
    const values = program.parameters.map((each) => this.#place(each, 0).whole);
    this.parameters = this.#lay(values, program.parameterPlacement).map((x) => x.requiresGrad_());
    if (program.gradientPlacement) {
      const zeros = values.map((x) => t.zerosLike(x));
      const gradients = this.#lay(zeros, program.gradientPlacement);
      this.parameters.forEach((parameter, i) => (parameter.grad = gradients[i]!));
    }
    const trainer = program.trainer === null ? null : trainers[program.trainer]!;
    this.train = trainer?.make(this.parameters) ?? (() => {});
  }

  /** The arguments of a call, and the tensors that they are views of. */
  argumentsOf(call: number): { readonly given: Tensor[]; readonly wholes: Tensor[] } {
    const placed = this.#program.arguments.map((each) => this.#place(each, call));
    return { given: placed.map(({ view }) => view), wholes: placed.map(({ whole }) => whole) };
  }

  /** Runs the program once. */
  run(given: readonly Tensor[]): Tensor[] {
    const program = this.#program;
    const registers = new Map<number, Tensor>();
    program.arguments.forEach(({ register }, i) => registers.set(register.id, given[i]!));
    program.buffers.forEach(({ register }, i) => registers.set(register.id, this.#buffers[i]!.view));
    program.parameters.forEach(({ register }, i) => registers.set(register.id, this.parameters[i]!));
    const runAll = () => {
      for (const { operands, makes, run } of program.instructions) {
        const made = run(
          operands.map((id) => registers.get(id)!),
          this,
        );
        if (makes) registers.set(makes.id, made!);
      }
    };
    if (program.isWithoutGrad) t.noGrad(runAll);
    else runAll();
    return program.results.map((id) => registers.get(id)!.detach());
  }

  act(action: HostAction): void {
    if (action === 'forgets gradients') return this.forgetGradients();
    const written =
      action === 'writes parameters' ? this.parameters : this.#buffers.map(({ whole }) => whole);
    t.noGrad(() => {
      for (const x of written) if (t.isFloatingPoint(x.dtype)) t.copyInPlace(x, t.mul(x, 0.5));
    });
  }

  forgetGradients(): void {
    for (const parameter of this.parameters) {
      parameter.grad?.dispose();
      parameter.grad = null;
    }
  }

  /** As found by the program. */
  get buffers(): Tensor[] {
    return this.#buffers.map(({ view }) => view);
  }

  /** What remains besides the results. */
  get state(): Record<string, readonly (Tensor | null)[]> {
    return {
      buffers: this.#buffers.map(({ whole }) => whole),
      parameters: this.parameters,
      gradients: this.parameters.map(({ grad }) => grad),
      flat: this.#flat,
    };
  }

  #place({ register, input, indicesBelow }: GivenTensor, call: number): Placed {
    const random = new RandomSource(`${register.name} of call ${call}`, this.#program.seed);
    const { dtype, baseShape, views } = input;
    const size = t.sizeOf(baseShape);
    const data =
      indicesBelow === null
        ? drawValues(random, dtype, size, 'ordinary')
        : encode(
            dtype,
            Array.from({ length: size }, () => random.integer(0, indicesBelow - 1)),
          );
    const whole = t.keep(t.fromTypedArray(data, baseShape, { dtype, device: this.#device }));
    // With a single handle: writing a history into memory that has several is refused.
    if (views.length === 0) return { whole, view: whole };
    return { whole, view: t.keep(views.reduce((x, { ours }) => ours(x), t.alias(whole))) };
  }

  /** The same values, separate or in one tensor. */
  #lay(values: readonly Tensor[], placement: Placement): Tensor[] {
    if (placement === 'apart') return values.map((x) => t.keep(t.copy(x)));
    let at = placement === 'one buffer' ? 0 : 1;
    const flat = t.keep(
      t.zeros([at + values.reduce((sum, { size }) => sum + size, 0)], {
        device: this.#device,
        dtype: values[0]?.dtype ?? 'float32',
      }),
    );
    this.#flat.push(flat);
    return values.map((x) => {
      const part = t.keep(t.view(t.slice(flat, 0, at, (at += x.size)), x.shape));
      t.copyInPlace(part, x);
      return part;
    });
  }
}

interface Placed {
  readonly whole: Tensor;
  readonly view: Tensor;
}
