export { AdamW, type AdamWOptions } from './adamw.ts';
export { clipGradientNorm } from './clip-gradient-norm.ts';
export { type CosineScheduleOptions, cosineSchedule } from './cosine-schedule.ts';
export { GradientScaler, type GradientScalerOptions, type GradientScalerState } from './gradient-scaler.ts';
export {
  type OptimizedParameters,
  Optimizer,
  type OptimizerKind,
  type ParameterGroup,
  type ParameterGroupOptions,
} from './optimizer.ts';
export { type OptimizerState, OptimizerStateError } from './optimizer-state.ts';
export { SGD, type SGDOptions } from './sgd.ts';
