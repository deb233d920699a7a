/** Operations of jobs, of which there are back-tests alone. */

import type { Operations } from './operations.js';

export const JOB_CALLS: Operations = [
  ['GET jobs/*', (service, _, id = '') => service.backTests.get(id)],
  ['POST jobs/*/cancel', (service, _, id = '') => service.backTests.cancel(id)],
  ['POST jobs/*/retry', (service, _, id = '') => service.backTests.retry(id)],
];
