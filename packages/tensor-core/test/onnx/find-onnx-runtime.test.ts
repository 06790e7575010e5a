import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LibraryNotFoundError } from '@roofline/cuda/host';
import { findOnnxRuntime } from '../../src/onnx/find-onnx-runtime.ts';

const own = '@roofline/onnxruntime-linux-arm64';
const library = 'libonnxruntime.so.1';
let project: string;

beforeEach(() => void (project = mkdtempSync(join(tmpdir(), 'roofline-find-'))));
afterEach(() => rmSync(project, { recursive: true }));

function writeFiles(name: string, files: Record<string, string>): void {
  for (const [path, content] of Object.entries(files)) {
    const file = join(project, 'node_modules', name, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
}

/** As Node would, without the folders that a test runner adds. */
function resolve(specifier: string): string {
  return realpathSync(join(project, 'node_modules', specifier));
}

const find = (platform: string) => findOnnxRuntime(platform, resolve);

it('takes the package of the platform, and onnxruntime-node where that is missing', () => {
  const shipped = join('bin/napi-v6/linux/arm64', library);
  writeFiles('onnxruntime-node', { 'package.json': '{"version":"1.30.0"}', [shipped]: '' });
  expect(find('linux-arm64')).toEqual({
    path: expect.stringContaining(join('onnxruntime-node', shipped)),
    version: '1.30.0',
  });
  writeFiles(own, { 'package.json': '{"version":"1.30.1"}' });
  expect(find('linux-arm64').version).toBe('1.30.0'); // as in a checkout: the package was never packed
  writeFiles(own, { [library]: '' });
  expect(find('linux-arm64')).toEqual({
    path: expect.stringContaining(join(own, library)),
    version: '1.30.1',
  });
});

it('says which package to install where there is none', () => {
  expect(() => find('linux-arm64')).toThrow(LibraryNotFoundError);
  expect(() => find('win32-x64')).toThrow('npm install @roofline/onnxruntime-win32-x64');
  writeFiles('onnxruntime-node', { 'package.json': '{"version":"1.30.0"}' });
  expect(() => find('linux-arm64')).toThrow(`npm install ${own}`);
});

it('says which platforms there are on one without a library', () => {
  expect(() => find('darwin-x64')).toThrow(/none for darwin-x64; there is for linux-x64, .* CUDA device/);
});
