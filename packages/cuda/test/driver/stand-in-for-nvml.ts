import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import koffi from 'koffi';
import { vi } from 'vitest';

/** The GPUs that it knows: one that has clocks, and another. */
export const gpuOfNvml = '0000:18:00.0';
export const otherOfNvml = '0000:2a:00.0';

/** Builds a libnvidia-ml of these, without what `definitions` leave out, and puts it first; gives what steers it. */
export function standInForNvml(definitions: readonly string[] = []) {
  const folder = mkdtempSync(join(tmpdir(), 'roofline-nvml-'));
  const source = fileURLToPath(new URL('fake-nvml.cpp', import.meta.url));
  const library = join(folder, 'libnvidia-ml.so.1');
  execFileSync('g++', [
    ...['-shared', '-fPIC', source, '-o', library],
    ...definitions.map((definition) => `-D${definition}`),
  ]);
  const others = process.env.ROOFLINE_CUDA_LIBRARIES ?? '';
  vi.stubEnv('ROOFLINE_CUDA_LIBRARIES', [folder, others].join(delimiter));
  const handle = koffi.load(library);
  return {
    /** What limits the clocks now, by NVML's bits, and for how long limits of power and heat have, in nanoseconds. */
    set: handle.func('void fakeClocks(uint64_t now, uint64_t powerNs, uint64_t thermalNs)'),
    /** What it returns of the limits and of their times; 0 for success. */
    answer: handle.func('void fakeAnswers(int reasons, int violations)'),
    /** What it says of a capability between the two; 0 for that they have it. */
    setP2p: handle.func('void fakeP2p(int capability, int status)'),
    answerStart: handle.func('void fakeStart(int answer)'),
    end() {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    },
  };
}
