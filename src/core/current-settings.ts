/** Settings that a reload of the configuration replaces as a whole. A reader takes `current` anew for every request. */
export interface CurrentSettings<Settings> {
  readonly current: Settings;
}
