import { describe } from 'vitest';
import { device } from '../../src/index.ts';
import { describeLookups } from '../compile/fuse-lookups-cases.ts';

describe('rows of a table before norms, on CUDA', () => describeLookups(() => device('cuda')));
