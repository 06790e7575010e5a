// Rewrites golden.safetensors: node --conditions=roofline-source test/torch/write-golden.ts
import { fileURLToPath } from 'node:url';
import { findTorchPython, runReference } from './python.ts';

const config = {
  vocabularySize: 24,
  contextLength: 7,
  modelDimension: 12,
  feedForwardDimension: 20,
  layers: 2,
  heads: 3,
};
const python = findTorchPython();
if (!python)
  throw new Error('The golden file is written by a Python with PyTorch; set ROOFLINE_PYTHON to one.');
runReference(python, config, 20_250_101, fileURLToPath(new URL('golden.safetensors', import.meta.url)));
