// CPU time and memory of a process, from Linux' /proc.
import { readFileSync } from 'node:fs';

/** Milliseconds of one clock tick of /proc: USER_HZ is 100 on every Linux. */
const TICK_MS = 10;

/** CPU time that all threads of the process have used, in milliseconds. */
export function cpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name, which may hold blanks, ends with the last bracket; user and system time are fields 14 and 15.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** Bytes of memory that the process holds, the pages of its program included. */
export function residentBytes(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kib) * 1024;
}
