// Typed access to one cell of an endpoint column: `column.f32(COLUMN_WAITING, slot)`.
//
// Owns: nothing; endpoints.ts says who writes each column and under which lock. Loops over a whole column take its
// address once (`columnAddress`) and step by `slotOffset`.
import { cell, wideCell } from '../endpoints';

/** Bytes from the first cell of a 32-bit column to the cell of a slot. */
export function slotOffset(slot: u32): usize {
  return (<usize>slot) << 2;
}

function readU32(column: u32, slot: u32): u32 {
  return load<u32>(cell(column, slot));
}

function writeU32(column: u32, slot: u32, value: u32): void {
  store<u32>(cell(column, slot), value);
}

function increaseU32(column: u32, slot: u32, by: u32): void {
  const at = cell(column, slot);
  store<u32>(at, load<u32>(at) + by);
}

function readF32(column: u32, slot: u32): f32 {
  return load<f32>(cell(column, slot));
}

function writeF32(column: u32, slot: u32, value: f32): void {
  store<f32>(cell(column, slot), value);
}

function readF64(column: u32, slot: u32): f64 {
  return load<f64>(wideCell(column, slot));
}

function writeF64(column: u32, slot: u32, value: f64): void {
  store<f64>(wideCell(column, slot), value);
}

export {
  increaseU32 as addU32,
  readF32 as f32,
  readF64 as f64,
  readU32 as u32,
  writeF32 as setF32,
  writeF64 as setF64,
  writeU32 as setU32,
};
