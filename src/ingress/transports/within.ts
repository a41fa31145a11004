/** Waits for `event`, at most `ms`. */
export async function within(ms: number, event: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([event, late]);
  clearTimeout(timer);
}
