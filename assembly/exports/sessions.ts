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
  FOUND_FORGOTTEN,
  FOUND_FORK,
  FOUND_GIVEN_UP,
  FOUND_NEW,
  FOUND_PROTECTED,
  FOUND_UNCOUNTED,
} from '../gate/sessions-found';
export {
  NO_HOME,
  SESSION_IDLE,
  SESSION_LAPSED,
  SESSION_LISTED,
  SESSION_RUNNING,
  SESSION_STATE,
  SESSIONS_AGAIN_LAPSED,
  SESSIONS_AGAIN_LOST,
  SESSIONS_AGAIN_MOVED,
  SESSIONS_AT_HOME,
  SESSIONS_FIT,
  SESSIONS_FORCED,
  SESSIONS_FORGOTTEN,
  SESSIONS_FORKED,
  SESSIONS_GIVEN_UP,
  SESSIONS_HELD,
  SESSIONS_NEW,
  SESSIONS_OFF,
  SESSIONS_ON,
  SESSIONS_RECOGNISED,
  SESSIONS_SAVED,
  SESSIONS_SHADOW,
  SESSIONS_SMALL,
  SESSIONS_UNCOUNTED,
  sessionAddress,
  sessionsCounter,
  sessionsHeld,
} from '../gate/sessions-layout';
export { sessionsAgeEnd, sessionsKeptFor } from '../gate/sessions-returns';
export { LOOK_HELD, sessionsConfigure, sessionsTick } from '../gate/sessions-room';
export { turnsCheck } from '../gate/sessions-turns';
