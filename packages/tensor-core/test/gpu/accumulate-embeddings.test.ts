import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeAccumulatedEmbeddings } from '../compile/passes/accumulate-embeddings-cases.ts';

describe('gradients of tables, added, on CUDA', () => describeAccumulatedEmbeddings(() => device('cuda')));
