import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeAccumulatedEmbeddings } from '../program/accumulate-embeddings-cases.ts';

describe('gradients of tables, added, on CUDA', () => describeAccumulatedEmbeddings(() => device('cuda')));
