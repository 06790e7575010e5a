import {
  type Device,
  type DeviceSpec,
  type Tensor,
  checkDevice,
  checkObject,
  checkOptions,
  checkText,
  fromBytes,
  requireTensors,
  scope,
} from '@roofline/tensor-core';
import { checkMetadata } from './safetensors-header.ts';
import { SafetensorsFile, writeSafetensors } from './safetensors.ts';

/** Tensors and text, as a safetensors file holds them; the state of an optimizer is such a pair. */
export interface NamedTensors {
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Writes tensors to a safetensors file; one at a time passes through the host's memory. */
export function saveTensors(named: NamedTensors, path: string): void {
  checkOptions('saveTensors', named, ['tensors', 'metadata']);
  const { tensors, metadata } = named;
  checkObject('saveTensors', 'tensors', tensors);
  requireTensors('saveTensors', Object.values(tensors));
  checkMetadata('saveTensors', metadata);
  checkText('saveTensors', 'the path', path);
  const sources = Object.entries(tensors).map(([name, tensor]) => ({
    name,
    dtype: tensor.dtype,
    shape: tensor.shape,
    read: () => {
      const { buffer, byteOffset, byteLength } = tensor.toTypedArray();
      return new Uint8Array(buffer, byteOffset, byteLength);
    },
  }));
  writeSafetensors(path, sources, metadata);
}

/** Reads all tensors of a safetensors file to a device. Throws a SafetensorsError for a damaged file. */
export function loadTensors(path: string, options: { device?: DeviceSpec | Device } = {}): NamedTensors {
  checkText('loadTensors', 'the path', path);
  checkOptions('loadTensors', options, ['device']);
  const { device = 'cpu' } = options;
  checkDevice('loadTensors', device);
  using file = new SafetensorsFile(path);
  const names = [...file.tensors.keys()];
  // In a scope, which frees those that were read where another cannot be.
  return scope(() => ({
    tensors: Object.fromEntries(names.map((name) => [name, readTensor(file, name, device)])),
    metadata: file.metadata,
  }));
}

/** One tensor of an open file, on a device. */
export function readTensor(file: SafetensorsFile, name: string, device: DeviceSpec | Device): Tensor {
  const bytes = file.read(name);
  const { dtype, shape } = file.tensors.get(name)!;
  return fromBytes(bytes, shape, { dtype, device });
}
