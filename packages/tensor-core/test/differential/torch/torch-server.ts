import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { DType, Shape, TypedArray } from '../../../src/index.ts';
import { bytesOf, fromBytes } from '../programs/host-data.ts';
import { type Program, torchSteps } from '../programs/program.ts';

/** The first Python that imports PyTorch: `ROOFLINE_PYTHON`, or one of the usual names. */
export function findTorchPython(): string | undefined {
  const candidates = [process.env['ROOFLINE_PYTHON'], 'python3', '/usr/bin/python3', 'python'];
  return candidates.find((python) => python && spawnSync(python, ['-c', 'import torch']).status === 0);
}

export interface TorchTensor {
  /** PyTorch's own name where we have no such dtype. */
  readonly dtype: DType;
  readonly shape: Shape;
  readonly requiresGrad: boolean;
  readonly aliases: readonly number[];
  readonly data: TypedArray;
  /**
   * In float64, and how far roundings of the dtype move that; under the rule `rounded`, how far PyTorch errs at neighbouring
   * inputs. Null where there is none.
   */
  readonly reference: Float64Array | null;
  readonly noise: Float64Array | null;
}

export type TorchOutcome =
  | { readonly error: string }
  | {
      readonly error: null;
      readonly outputs: readonly TorchTensor[];
      readonly gradients: readonly (TorchTensor | null)[];
    };

interface TensorHeader extends Omit<TorchTensor, 'data' | 'reference' | 'noise'> {
  readonly hasReference?: true;
  readonly bytes: readonly number[];
}

/** One Python process that runs programs in PyTorch, in the order in which they are sent. */
export class TorchServer {
  readonly #process: ChildProcess;
  readonly #chunks: AsyncIterator<Buffer>;
  #pending: Buffer = Buffer.alloc(0);
  #errors = '';

  constructor(python: string) {
    const script = fileURLToPath(new URL('torch_server.py', import.meta.url));
    this.#process = spawn(python, ['-B', script], { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#process.stderr!.on('data', (text: Buffer) => (this.#errors += text.toString()));
    this.#chunks = this.#process.stdout![Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** Sends a program; `receive` gives the outcomes in the same order. */
  send(program: Program): void {
    let offset = 0;
    const inputs = program.inputs.map((input) => {
      const { dtype, baseShape: shape, requiresGrad, data, aliasOf } = input;
      const bytes = aliasOf === undefined ? data.byteLength : 0;
      const views = input.views.map((step) => step.torch).join('');
      const spec = { dtype, shape, requiresGrad, offset, bytes, views, aliasOf };
      offset += bytes;
      return spec;
    });
    const { rule, mutates, keepsFloat32, exactAddends } = program;
    // In which precision the addends of sums may be rounded.
    const addends = rule !== 'accumulated' ? 'none' : exactAddends ? 'float64' : 'own';
    const header = Buffer.from(
      JSON.stringify({
        inputs,
        steps: torchSteps(program),
        rule,
        addends,
        mutates,
        keepsFloat32,
        bytes: offset,
      }),
    );
    const length = Buffer.alloc(4);
    length.writeUInt32LE(header.length);
    const payload = program.inputs.flatMap(({ data, aliasOf }) =>
      aliasOf === undefined ? [bytesOf(data)] : [],
    );
    this.#process.stdin!.write(Buffer.concat([length, header, ...payload]));
  }

  async receive(): Promise<TorchOutcome> {
    const length = (await this.#read(4)).readUInt32LE();
    const header = JSON.parse((await this.#read(length)).toString()) as
      { error: string } | { error: null; outputs: TensorHeader[]; gradients: (TensorHeader | null)[] };
    if (header.error !== null) return header;
    const outputs: TorchTensor[] = [];
    for (const tensor of header.outputs) outputs.push(await this.#tensor(tensor));
    const gradients: (TorchTensor | null)[] = [];
    for (const tensor of header.gradients) gradients.push(tensor && (await this.#tensor(tensor)));
    return { error: null, outputs, gradients };
  }

  close(): void {
    this.#process.stdin!.end();
  }

  async #tensor({ bytes, hasReference, ...rest }: TensorHeader): Promise<TorchTensor> {
    const data = fromBytes(rest.dtype, await this.#read(bytes[0]!));
    if (!hasReference) return { ...rest, data, reference: null, noise: null };
    const reference = fromBytes('float64', await this.#read(bytes[1]!)) as Float64Array;
    const noise = fromBytes('float64', await this.#read(bytes[2]!)) as Float64Array;
    return { ...rest, data, reference, noise };
  }

  async #read(length: number): Promise<Buffer> {
    while (this.#pending.length < length) {
      const { value, done } = await this.#chunks.next();
      if (done) throw new Error(`torch_server.py ended early:\n${this.#errors}`);
      this.#pending = Buffer.concat([this.#pending, value]);
    }
    const result = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return result;
  }
}
