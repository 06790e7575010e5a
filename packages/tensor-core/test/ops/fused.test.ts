import { describeOnDevices } from '../op-cases/devices.ts';
import { describeFused } from '../op-cases/fused.ts';

describeOnDevices(describeFused);
