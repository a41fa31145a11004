/**
 * Changes an element until it looks like another one, and keeps the nodes that stay: what has the focus, is selected or
 * is being read keeps its place. Children with a `data-key` are the same where their keys are; others where they stand
 * at the same place and are of one kind.
 */
export function renewChildren(place: Element, wanted: readonly Node[]): void {
  const keys = new Set(wanted.flatMap((node) => keyOf(node) ?? []));
  // First what goes, so that what stays need not be moved: a node that is moved loses the focus.
  for (const old of [...place.childNodes]) {
    const key = keyOf(old);
    if (key !== undefined && !keys.has(key)) old.remove();
  }
  const kept = new Map([...place.childNodes].flatMap((node) => pairOf(node)));
  let next: ChildNode | null = place.firstChild;
  for (const node of wanted) {
    const key = keyOf(node);
    const old = key === undefined ? next : (kept.get(key) ?? null);
    if (old === null || !isSameKind(old, node)) {
      place.insertBefore(node, next);
      continue;
    }
    if (old === next) next = next.nextSibling;
    else place.insertBefore(old, next);
    renew(old, node);
  }
  while (next !== null) {
    const after: ChildNode | null = next.nextSibling;
    next.remove();
    next = after;
  }
}

function renew(old: Node, wanted: Node): void {
  if (!(old instanceof HTMLElement && wanted instanceof HTMLElement)) {
    if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of wanted.attributes) {
    // The policy of the page lets scripts set styles, and no attributes of that name.
    if (name !== 'style' && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.style.cssText !== wanted.style.cssText) old.style.cssText = wanted.style.cssText;
  renewChildren(old, [...wanted.childNodes]);
}

function keyOf(node: Node): string | undefined {
  return node instanceof HTMLElement ? node.dataset.key : undefined;
}

function pairOf(node: ChildNode): [string, ChildNode][] {
  const key = keyOf(node);
  return key === undefined ? [] : [[key, node]];
}

/** Whether one node can be changed into the other. Listeners stay as they were, so controls need keys. */
function isSameKind(old: Node, wanted: Node): boolean {
  return old.nodeName === wanted.nodeName && keyOf(old) === keyOf(wanted);
}
