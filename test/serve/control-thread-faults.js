// Loaded into a picker by `--import`: on SIGUSR2 its control thread does what POINTSMAN_TEST_FAULT names.
import { isMainThread } from 'node:worker_threads';

const FAULTS = {
  exception: () => {
    throw new Error('broken on purpose');
  },
  rejection: () => void Promise.reject(new Error('broken on purpose')),
  hang: () => {
    for (;;);
  },
};

if (isMainThread) process.on('SIGUSR2', FAULTS[process.env.POINTSMAN_TEST_FAULT]);
