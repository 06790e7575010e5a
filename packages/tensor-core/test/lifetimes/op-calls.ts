import * as t from '../../src/index.ts';
import type { Device, Tensor } from '../../src/index.ts';
import type { Call, OpEntry } from '../differential/programs/program.ts';
import { RandomSource } from '../differential/programs/random-source.ts';
import { seedGradient } from '../differential/run-ours.ts';
import { makeBase, viewOf } from '../differential/programs/tensor-input.ts';

/** A call of a public op outside all scopes, and the tensors that it is given. */
export class OpCall {
  readonly #call: Call;
  readonly #device: Device;
  readonly #bases: readonly Tensor[];
  readonly #operands: readonly (Tensor | number)[];

  constructor(entry: OpEntry, seed: number, device: Device) {
    this.#call = entry.draw(new RandomSource(entry.name, seed));
    this.#device = device;
    [this.#bases, this.#operands] = t.scope(() => {
      const bases: Tensor[] = [];
      const operands = this.#call.operands.map((operand) => {
        if (typeof operand === 'number') return operand;
        const base = operand.aliasOf === undefined ? makeBase(operand, device) : bases[operand.aliasOf]!;
        bases.push(base);
        return viewOf(base, operand);
      });
      return [bases, operands] as const;
    });
  }

  /** The elements of what it is given, as bytes. */
  inputs(): string[] {
    return this.#bases.map((base) => Buffer.from(base.toTypedArray().buffer).toString('hex'));
  }

  /** Calls the op, runs `backward` from each of its results if asked to, and disposes of the results. */
  run(backward: boolean): void {
    const given = this.#call.ours(this.#operands, this.#device);
    const results = given instanceof t.Tensor ? [given] : given;
    try {
      const roots = backward ? results.filter((result) => result.requiresGrad) : [];
      roots.forEach((root, i) => {
        using gradient = t.fromTypedArray(seedGradient(root.dtype, root.size), root.shape, {
          dtype: root.dtype,
          device: root.device,
        });
        root.backward(gradient, { retainGraph: i < roots.length - 1 });
      });
    } finally {
      for (const result of results) result.dispose();
    }
  }

  /** Disposes of the inputs, and of their gradients. */
  dispose(): void {
    for (const tensor of [...this.#bases, ...this.#operands])
      if (typeof tensor !== 'number') tensor.dispose();
  }
}
