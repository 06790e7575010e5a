import { device } from '../../src/index.ts';
import { describeAddmm } from '../op-cases/matrix/addmm.ts';

describeAddmm(() => device('cuda'));
