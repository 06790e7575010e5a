export { AdamW } from './optimizers/adamw.ts';
export type { AdamWOptions } from './optimizers/hyperparameters.ts';
export { type ClipOptions, clipGradientNorm } from './gradients/clip-gradient-norm.ts';
export type { GradientRanks } from './gradients/gradient-ranks.ts';
export {
  GradientScaler,
  type GradientScalerOptions,
  type GradientScalerState,
  type SteppingOptimizer,
} from './gradients/gradient-scaler.ts';
export {
  type OptimizedParameters,
  Optimizer,
  type OptimizerKind,
  type ParameterGroup,
  type ParameterGroupOptions,
} from './optimizers/optimizer.ts';
export { type OptimizerState, OptimizerStateError } from './optimizers/optimizer-state.ts';
export { SGD } from './optimizers/sgd.ts';
export type { SGDOptions } from './optimizers/hyperparameters.ts';
export {
  type ConstantScheduleOptions,
  type CosineScheduleOptions,
  type LinearScheduleOptions,
  type Schedule,
  type ScheduleDescription,
  type WsdScheduleOptions,
  constantSchedule,
  cosineSchedule,
  linearSchedule,
  scheduleKinds,
  scheduleOf,
  wsdSchedule,
} from './schedules.ts';
