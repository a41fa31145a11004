/** Settings that a reload of the configuration replaces as a whole. A reader reads `current` for every request. */
export interface CurrentSettings<Settings> {
  readonly current: Settings;
}
