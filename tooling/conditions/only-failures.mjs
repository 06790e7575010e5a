/** Tests that fail as they are have not been run with any mutant. */
export class OnlyFailures {
  onTestRunEnd(modules, errors) {
    // A GPU that a mutant has broken goes on to fail as memory is freed.
    if (errors.length > 0)
      console.error(`${errors.length} errors outside of tests, the first: ${errors[0].message}`);
    for (const module of modules) {
      for (const { message } of module.errors()) console.error(`${module.moduleId}: ${message}`);
      for (const test of module.children.allTests('failed')) {
        console.error(
          `fails as it is: ${module.moduleId} > ${test.name}: ${test.result().errors[0]?.message}`,
        );
        process.exitCode = 1;
      }
    }
  }
}
