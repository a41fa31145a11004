// Typed access to one cell of a column of the gate: `room.f32(ROOM_LIMIT, slot)`.
//
// Owns: nothing; layout.ts says who writes each column and under which lock.
import { roomCell, wideRoomCell } from './layout';

function readU32(column: u32, slot: u32): u32 {
  return load<u32>(roomCell(column, slot));
}

function writeU32(column: u32, slot: u32, value: u32): void {
  store<u32>(roomCell(column, slot), value);
}

function readF32(column: u32, slot: u32): f32 {
  return load<f32>(roomCell(column, slot));
}

function writeF32(column: u32, slot: u32, value: f32): void {
  store<f32>(roomCell(column, slot), value);
}

function readF64(column: u32, slot: u32): f64 {
  return load<f64>(wideRoomCell(column, slot));
}

function writeF64(column: u32, slot: u32, value: f64): void {
  store<f64>(wideRoomCell(column, slot), value);
}

export { readF32 as f32, readF64 as f64, readU32 as u32, writeF32 as setF32, writeF64 as setF64, writeU32 as setU32 };
