// Layout of the metrics scanner's memory: one per thread, behind the thread's response scans.
//
// Owns: the last SCRAPE_BYTES of a thread's part of REGION_RESPONSES. Only its own thread reads and writes it, so there is
// no lock; the queries are written again by whoever takes the thread's place, so there is nothing to repair.

export const SCRAPE_QUERIES: u32 = 32; // compiled queries per thread
export const QUERY_METRICS: u32 = 32; // wanted metrics per query
export const QUERY_LABEL_METRICS: u32 = 8; // of them, those that want labels
export const METRIC_LABELS: u32 = 8; // wanted labels per metric
export const METRIC_MATCHERS: u32 = 8; // labels that must match, per metric
export const QUERY_TEXT_BYTES: usize = 8192; // all names, matchers and wanted labels of a query
export const SCRAPE_LINE_BYTES: usize = 524288; // longest wanted line that may be cut by a piece's end
export const SCRAPE_CAPTURE_BYTES: usize = 65536; // wanted label values of one metric

// A query: the number of its metrics, the metrics, the text.
export const QUERY_COUNT: usize = 0;
export const QUERY_METRIC_LIST: usize = 64;
export const QUERY_METRIC_BYTES: usize = 64;
export const QUERY_TEXT: usize = QUERY_METRIC_LIST + <usize>QUERY_METRICS * QUERY_METRIC_BYTES;
export const QUERY_BYTES: usize = QUERY_TEXT + QUERY_TEXT_BYTES;

// A wanted metric. Offsets count from the query's text.
export const METRIC_HEAD: usize = 0; // u64: the first eight bytes of its name, the missing ones 0
export const METRIC_HEAD_MASK: usize = 8; // u64: which of them there are
export const METRIC_NAME: usize = 16;
export const METRIC_NAME_BYTES: usize = 20;
export const METRIC_AGGREGATE: usize = 24; // AGGREGATE_*
export const METRIC_MATCHER_COUNT: usize = 28;
export const METRIC_MATCHER_LIST: usize = 32; // each: u16 name bytes, u16 value bytes, name, value
export const METRIC_LABEL_COUNT: usize = 36;
export const METRIC_LABEL_LIST: usize = 40; // each: u16 name bytes, name
export const METRIC_CAPTURE: usize = 44; // which of the captures is its own
export const METRIC_ABSENT_MATCH: usize = 48; // bit per matcher that an absent label satisfies: its value is empty

export const AGGREGATE_SUM: u32 = 0;
export const AGGREGATE_MAX: u32 = 1;
export const AGGREGATE_LATEST_LABELS: u32 = 2; // the labels of the series with the largest value

// The scan under way.
export const SCRAPE_QUERY: usize = 0; // which query
export const SCRAPE_SKIPPING: usize = 4; // 1: the rest of the line is passed over
export const SCRAPE_CARRIED: usize = 8; // bytes of a cut line in the line buffer
export const SCRAPE_UNUSABLE: usize = 12; // wanted lines that could not be read
export const SCRAPE_LABEL_SPANS: usize = 64; // address and length of each wanted label in the line being read
export const SCRAPE_RESULTS: usize = 128;

// A wanted metric's result.
export const SCRAPE_RESULT_VALUE: usize = 0; // f64
export const SCRAPE_RESULT_FOUND: usize = 8;
export const SCRAPE_RESULT_LABELS: usize = 16; // offset in the metric's capture and length of each wanted label
export const SCRAPE_RESULT_BYTES: usize = 128;

export const SCRAPE_QUERY_LIST: usize = SCRAPE_RESULTS + <usize>QUERY_METRICS * SCRAPE_RESULT_BYTES;
export const SCRAPE_CAPTURES: usize = SCRAPE_QUERY_LIST + <usize>SCRAPE_QUERIES * QUERY_BYTES;
export const SCRAPE_LINE: usize = SCRAPE_CAPTURES + <usize>QUERY_LABEL_METRICS * SCRAPE_CAPTURE_BYTES;
export const SCRAPE_BYTES: usize = SCRAPE_LINE + SCRAPE_LINE_BYTES + 64; // vector loads may touch the 64
