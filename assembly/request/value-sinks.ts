// Destinations of the current string or number.
//
// Owns nothing.

export const SINK_NONE: u32 = 0;
export const SINK_PROMPT: u32 = 1;
export const SINK_KEY: u32 = 2; // a key of a tracked object
export const SINK_OTHER_KEY: u32 = 3;
export const SINK_MODEL: u32 = 4;
export const SINK_SALT: u32 = 5;
export const SINK_TOKEN: u32 = 6;
export const SINK_LIMIT_FIRST: u32 = 7;
export const SINK_LIMIT_SECOND: u32 = 8;
export const SINK_NOTICE: u32 = 9; // a system text that may turn out to be the billing notice
export const SINK_TYPE: u32 = 20; // what a part of the prompt is
export const SINK_NESTED_KEY: u32 = 21; // a key inside of a value of the prompt that is taken raw
