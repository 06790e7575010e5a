import { expect, it } from 'vitest';
import {
  diagnosisTable,
  neededBy,
  remedies,
  remedyLines,
  verdict,
  type DiagnosisEntry,
} from '../../src/device/diagnosis.ts';

const found = (component: string): DiagnosisEntry => ({ component, status: 'found', detail: 'does it' });
const missing = (component: string): DiagnosisEntry => ({
  component,
  status: 'missing',
  detail: 'does it',
  remedy: `Install ${component}.`,
});
const libraries = ['libcuda', 'libnvrtc', 'libcublasLt', 'libcupti'];
const torch = found('Python with PyTorch');

it('names each piece once, and below how to get what is missing', () => {
  const cuda = (component: string) => ({ ...missing(component), remedy: 'Install CUDA.' });
  const entries = [
    { ...found('ONNX Runtime'), path: '/lib/x' },
    cuda('libnccl'),
    missing('GPU'),
    cuda('libcupti'),
  ];
  expect(diagnosisTable(entries).rows.slice(0, 2)).toEqual([
    expect.objectContaining({ component: 'ONNX Runtime', detail: 'does it', path: '/lib/x' }),
    expect.objectContaining({ component: 'libnccl', detail: 'does it' }),
  ]);
  expect(remedyLines(entries)).toEqual(['libnccl, libcupti: Install CUDA.', 'GPU: Install GPU.']);
});

it('says what a device cannot do without, and what the driver said as a part of the sentence', () => {
  const driver = { ...missing('libcuda'), status: 'unusable', detail: 'cuInit failed.' } as const;
  const entries = [driver, missing('GPU'), missing('libnccl'), missing('ONNX Runtime'), torch];
  expect(remedies(neededBy('cuda', entries))).toEqual([
    'libcuda is unusable (cuInit failed). Install libcuda.',
    'GPU is missing (does it). Install GPU.',
  ]);
  expect(remedies(neededBy('cpu', entries))).toEqual([
    'ONNX Runtime is missing (does it). Install ONNX Runtime.',
  ]);
});

it.each([
  [
    'a laptop',
    [found('ONNX Runtime'), ...libraries.map(missing), missing('GPU'), torch],
    'The CPU is ready. No GPU: libcuda, libnvrtc, libcublasLt are missing.',
  ],
  [
    'a GPU host',
    [found('ONNX Runtime'), ...libraries.map(found), found('cuda:0'), found('cuda:1'), torch],
    'The CPU is ready. 2 GPUs are ready: cuda:0, cuda:1.',
  ],
  [
    'one that lacks a library, the profiler and PyTorch',
    [
      ...[
        found('ONNX Runtime'),
        found('libcuda'),
        missing('libnvrtc'),
        found('libcublasLt'),
        found('cuda:0'),
      ],
      ...[missing('libcupti'), missing('Python with PyTorch')],
    ],
    'The CPU is ready. No GPU: libnvrtc is missing. ' +
      'For now `roofline profile` has no kernels of the GPU. For now there is no `--peer torch`.',
  ],
  [
    'an old GPU, without the library of the CPU',
    [
      ...[missing('ONNX Runtime'), ...libraries.map(found), torch],
      { ...found('cuda:0'), status: 'unusable' } as const,
    ],
    'The CPU is not ready: ONNX Runtime is missing. No GPU: cuda:0 is unusable.',
  ],
  [
    'a driver that hangs',
    [{ ...found('devices'), status: 'unusable' } as const, torch],
    'Whether a device is ready is not known.',
  ],
])('gives the verdict of %s', (_, entries, sentence) => {
  expect(verdict(entries)).toBe(sentence);
});
