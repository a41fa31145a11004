// Checks the arrows between the rooms in the sources, type-only imports included: `npm run arrows`. The rooms and what
// they may import stand in rooms.ts.
import { APART, ROOMS } from './rooms.ts';
import { type Imports, readImports } from './source-imports.ts';

type Rooms = typeof ROOMS;

/** The longest room whose folder holds the file; undefined = the file is in none. */
function roomOf(file: string, rooms: Rooms): string | undefined {
  const holding = Object.keys(rooms).filter((room) => file.startsWith(`${room}/`));
  return holding.sort((a, b) => b.length - a.length)[0];
}

/** Imports of another room, as pairs of files and their rooms. */
function crossings(imports: Imports, rooms: Rooms) {
  return [...imports].flatMap(([file, targets]) =>
    targets
      .map((target) => ({ file, target, from: roomOf(file, rooms), to: roomOf(target, rooms) }))
      .filter(({ from, to }) => from !== undefined && to !== undefined && from !== to),
  );
}

/** Imports that no arrow allows, and files outside of all rooms, one line each. */
export function wrongImports(imports: Imports, rooms: Rooms = ROOMS): string[] {
  const homeless = [...imports.keys()].filter((file) => roomOf(file, rooms) === undefined);
  const wrong = crossings(imports, rooms).filter(({ from, to }) => !rooms[from!]!.includes(to!));
  return [
    ...homeless.map((file) => `${file} is in no room of scripts/rooms.ts`),
    ...wrong.map(({ file, target, from, to }) => `${file} imports ${target}: ${from} may not import ${to}`),
  ];
}

/** Arrows that no file uses, or that point to a room which does not stand below, one line each. */
export function wrongArrows(imports: Imports, rooms: Rooms = ROOMS): string[] {
  const used = new Set(crossings(imports, rooms).map(({ from, to }) => `${from} → ${to}`));
  const names = Object.keys(rooms);
  return Object.entries(rooms).flatMap(([from, targets]) =>
    targets.flatMap((to) => {
      const arrow = `${from} → ${to}`;
      if (names.indexOf(to) === -1 || names.indexOf(to) >= names.indexOf(from)) return [`${arrow} runs back`];
      return used.has(arrow) ? [] : [`${arrow} is allowed and no file uses it: remove it from scripts/rooms.ts`];
    }),
  );
}

/** Imports between folders that stay apart, one line each. */
export function joinedFolders(imports: Imports, apart: typeof APART = APART): string[] {
  const directed = apart.flatMap(([one, other]) => [[one, other] as const, [other, one] as const]);
  return [...imports].flatMap(([file, targets]) =>
    directed.flatMap(([from, to]) =>
      targets
        .filter((target) => file.startsWith(`${from}/`) && target.startsWith(`${to}/`))
        .map((target) => `${file} imports ${target}: ${from} and ${to} stay apart`),
    ),
  );
}

if (process.argv[1] === import.meta.filename) {
  const folders = new Set(Object.keys(ROOMS).map((room) => room.split('/')[0]!));
  const imports = readImports([...folders]);
  const wrong = [...wrongImports(imports), ...wrongArrows(imports), ...joinedFolders(imports)];
  for (const line of wrong) console.error(line);
  if (wrong.length > 0) process.exitCode = 1;
}
