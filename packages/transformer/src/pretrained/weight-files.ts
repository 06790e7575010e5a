import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Device, Tensor } from '@roofline/tensor-core';
import { SafetensorsError, type SafetensorsEntry } from '../checkpoint/safetensors-header.ts';
import { SafetensorsFile } from '../checkpoint/safetensors.ts';
import { readTensor } from '../checkpoint/tensor-file.ts';
import { readObject } from './read-config.ts';

const single = 'model.safetensors';
const index = 'model.safetensors.index.json';

/** The weights of a folder: of model.safetensors, or of several files by model.safetensors.index.json. Dispose it. */
export class WeightFiles {
  readonly folder: string;
  readonly tensors: ReadonlyMap<string, SafetensorsEntry>;
  readonly #files: SafetensorsFile[] = [];
  readonly #fileOf = new Map<string, SafetensorsFile>();

  /** Throws a SafetensorsError for a folder without weights, a damaged file, and a tensor that is not where the index says. */
  constructor(folder: string) {
    this.folder = folder;
    try {
      if (existsSync(join(folder, single))) this.#open(single);
      else if (existsSync(join(folder, index))) this.#openIndexed();
      else
        throw new SafetensorsError(
          `${folder} has neither ${single} nor ${index}; save the model by save_pretrained(), or fetch the files.`,
        );
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
    this.tensors = new Map([...this.#fileOf].map(([name, file]) => [name, file.tensors.get(name)!]));
  }

  #open(name: string): SafetensorsFile {
    const file = new SafetensorsFile(join(this.folder, name));
    this.#files.push(file);
    for (const tensor of file.tensors.keys()) this.#fileOf.set(tensor, file);
    return file;
  }

  #openIndexed(): void {
    const path = join(this.folder, index);
    const map = readObject(path)['weight_map'];
    if (typeof map !== 'object' || map === null)
      throw new SafetensorsError(`${path} has no weight_map; fetch or write it anew.`);
    const places = Object.entries(map as Record<string, string>);
    const files = new Map(
      [...new Set(places.map(([, name]) => name))].map((name) => [name, this.#open(name)]),
    );
    for (const [tensor, name] of places) {
      if (files.get(name)!.tensors.has(tensor)) continue;
      throw new SafetensorsError(`${path} says that ${name} has the tensor "${tensor}", which it has not.`);
    }
  }

  read(name: string, device: Device): Tensor {
    return readTensor(this.#fileOf.get(name)!, name, device);
  }

  [Symbol.dispose](): void {
    for (const file of this.#files) file.close();
  }
}
