// Exports of the sessions, nothing else.
export {
  sessionBegin,
  sessionEnd,
  sessionFree,
  sessionGrow,
  sessionLapse,
  sessionsCheck,
  sessionsForgotten,
  sessionsLeave,
  sessionsOtherBegins,
  sessionsOtherEnds,
  sessionsRepair,
  sessionsUsed,
  sessionTake,
} from '../gate/sessions';
export { anchoredBlocks, sessionOf, setAnchors } from '../gate/sessions-anchors';
export {
  SESSION_IDLE,
  SESSION_LAPSED,
  SESSION_LISTED,
  SESSION_RUNNING,
  SESSION_STATE,
  sessionAddress,
} from '../gate/sessions-layout';
