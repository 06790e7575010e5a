import { describeOnDevices } from '../op-cases/support/devices.ts';
import { describeFused } from '../op-cases/fused.ts';

describeOnDevices(describeFused);
