import {
  AutogradError,
  DTypeError,
  type DeviceBuffer,
  DeviceError,
  type MemoryView,
  ShapeError,
  type Tensor,
  alias,
  byteSize,
  copy,
  copyInPlace,
  formatShape,
  isGradEnabled,
  keep,
  noGrad,
  requireTensor,
} from '@roofline/tensor-core';
import type { Backend } from './backend.ts';
import { noteUse } from './memory-under-way.ts';

/** dtypes that travel: a bool is no number to reduce. */
export const collectiveDTypes = ['float32', 'float16', 'bfloat16', 'float64', 'int32', 'int64'] as const;

/** A tensor's memory for a backend: contiguous, and held until `release`. */
export interface Operand {
  readonly address: number;
  readonly buffer: DeviceBuffer;
  /** What the backend wrote is now in the tensor. Only outputs do anything here, and may throw. */
  finish(): void;
  release(): void;
}

/** Throws one of our errors, which names `op`, unless the backend can read this tensor, and nothing has to record that. */
export function checkOperand(op: string, x: Tensor, backend: Backend): void {
  checkTravels(op, x, backend);
  if (x.requiresGrad && isGradEnabled())
    throw new AutogradError(
      `${op}: is not recorded, so the gradient of ${formatShape(x.shape)} would be wrong; call it inside noGrad(), or ` +
        'detach the tensor.',
    );
}

/** Throws one of our errors, which names `op`, unless the backend can read this tensor. */
export function checkTravels(op: string, x: Tensor, { name, deviceType, device }: Backend): void {
  requireTensor(op, x);
  x.assertAlive(op);
  if (x.device.type !== deviceType)
    throw new DeviceError(
      `${op}: ${name} takes tensors of ${deviceType}, not of ${x.device.label}; move it there with toDevice().`,
    );
  if (device !== null && x.device !== device)
    throw new DeviceError(
      `${op}: this group works on ${device.label}, not on ${x.device.label}; move the tensor there with toDevice().`,
    );
  if (!(collectiveDTypes as readonly string[]).includes(x.dtype))
    throw new DTypeError(`${op}: takes ${collectiveDTypes.join(', ')}, not ${x.dtype}; cast() it.`);
}

/** The same for one that is written to. */
export function checkTarget(op: string, x: Tensor, backend: Backend): void {
  checkOperand(op, x, backend);
  if (repeatsElements(x))
    throw new ShapeError(
      `${op}: several elements of the output ${formatShape(x.shape)} lie at one place, as after expand(); write to a ` +
        'contiguous() copy.',
    );
}

/** Whether several elements lie at one place, as after `expand`, so that none of them can be written alone. */
export function repeatsElements({ size, shape, strides }: Tensor): boolean {
  return size > 0 && strides.some((stride, i) => stride === 0 && shape[i]! > 1);
}

/** A tensor to read: itself where it is contiguous, else a copy. Calls of one `order` run one after the other. */
export function inputOperand(op: string, x: Tensor, order: object): Operand {
  return noted(noteUse(op, x, { isWrite: false, order }), () => readOperand(op, x));
}

function readOperand(op: string, x: Tensor): Operand {
  if (x.isContiguous) {
    // It may move the memory to where it then stays.
    const release = hold(op, x);
    return { address: x.address, buffer: x.storage.buffer, finish: () => {}, release };
  }
  const packed = noGrad(() => keep(copy(x)));
  const { buffer } = packed.storage;
  return { address: packed.address, buffer, finish: () => {}, release: () => packed.dispose() };
}

/** A tensor to write to, or to read and write: itself where it is contiguous, else a copy that is copied back. */
export function outputOperand(op: string, x: Tensor, order: object): Operand {
  return noted(noteUse(op, x, { isWrite: true, order }), () =>
    x.isContiguous ? contiguousOutput(op, x) : stridedOutput(x),
  );
}

/** An operand whose release ends its use of the memory. */
function noted(endUse: () => void, make: () => Operand): Operand {
  try {
    const operand = make();
    return {
      ...operand,
      release() {
        endUse();
        operand.release();
      },
    };
  } catch (error) {
    endUse();
    throw error;
  }
}

function contiguousOutput(op: string, x: Tensor): Operand {
  const { storage } = x;
  const region = regionOf(x);
  storage.noteWrite(region);
  const release = hold(op, x);
  return { address: x.address, buffer: storage.buffer, finish: () => storage.noteWrite(region), release };
}

function stridedOutput(x: Tensor): Operand {
  const [packed, target] = noGrad(() => [keep(copy(x)), keep(alias(x))]);
  return {
    address: packed!.address,
    buffer: packed!.storage.buffer,
    finish: () => noGrad(() => copyInPlace(target!, packed!)),
    release() {
      packed!.dispose();
      target!.dispose();
    },
  };
}

/** Keeps a contiguous tensor's memory, at its place, and refuses in-place writes to it. */
function hold(op: string, x: Tensor): () => void {
  return x.storage.hold(regionOf(x), op);
}

/** The bytes of a contiguous tensor in its storage. */
export function regionOf({
  offset,
  dtype,
  byteLength,
}: Pick<MemoryView, 'offset' | 'dtype' | 'byteLength'>): { start: number; end: number } {
  const start = offset * byteSize(dtype);
  return { start, end: start + byteLength };
}

/**
 * Throws a ShapeError where `output` and `input` share memory, unless they begin at one place, `inPlace` bytes from the
 * start of the larger.
 */
export function checkOverlap(op: string, output: Tensor, input: Tensor, inPlaceBytes: number | null): void {
  // Where one is empty, so is the other, whose piece it is.
  if (output.storage !== input.storage || output.size === 0) return;
  const [large, small] = output.size >= input.size ? [output, input] : [input, output];
  const areContiguous = large.isContiguous && small.isContiguous;
  if (areContiguous && inPlaceBytes !== null && small.address === large.address + inPlaceBytes) return;
  const apart =
    large.address + large.byteLength <= small.address || small.address + small.byteLength <= large.address;
  if (areContiguous && apart) return;
  throw new ShapeError(
    `${op}: the output ${formatShape(output.shape)} shares memory with the input ${formatShape(input.shape)}` +
      `${inPlaceBytes === null ? '' : ", and not as this rank's piece of the larger"}; copy() the input.`,
  );
}
