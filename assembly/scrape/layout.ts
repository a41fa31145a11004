// Layout of the metrics scanner's memory: one per thread, behind the thread's response scans.
//
// Owns: the last SCRAPE_BYTES of a thread's part of REGION_RESPONSES. Only its own thread reads and writes it, so there
// is no lock. The thread's successor writes the queries again, so there is nothing to repair.
import { Metric, MetricResult, MetricsScan, Query, TextRange } from './scan-state';

export const SCRAPE_QUERIES: u32 = 32; // compiled queries per thread
export const QUERY_METRICS: u32 = 32; // wanted metrics per query
export const QUERY_LABEL_METRICS: u32 = 8; // of them, metrics with wanted labels
export const METRIC_LABELS: u32 = 8; // wanted labels per metric
export const METRIC_MATCHERS: u32 = 8; // labels that must match, per metric
export const QUERY_TEXT_BYTES: usize = 8192; // all names, matchers and wanted labels of a query
export const SCRAPE_LINE_BYTES: usize = 524288; // longest wanted line that may be cut by a piece's end
export const SCRAPE_CAPTURE_BYTES: usize = 65536; // wanted label values of one metric
export const SCRAPE_NAMES: u32 = 512; // distinct names of a page's comma lists
export const SCRAPE_NAME_CELLS: u32 = 1024; // of the table of their hashes, a power of two

// A query: the number of its metrics, the metrics, the text.
export const QUERY_COUNT: usize = offsetof<Query>('count');
export const QUERY_METRIC_LIST: usize = offsetof<Query>();
export const QUERY_METRIC_BYTES: usize = offsetof<Metric>();
export const QUERY_TEXT: usize = QUERY_METRIC_LIST + <usize>QUERY_METRICS * QUERY_METRIC_BYTES;
export const QUERY_BYTES: usize = QUERY_TEXT + QUERY_TEXT_BYTES;

// A wanted metric. Offsets count from the query's text.
export const METRIC_HEAD: usize = offsetof<Metric>('head');
export const METRIC_HEAD_MASK: usize = offsetof<Metric>('headMask');
export const METRIC_NAME: usize = offsetof<Metric>('name');
export const METRIC_NAME_BYTES: usize = offsetof<Metric>('nameBytes');
export const METRIC_AGGREGATE: usize = offsetof<Metric>('aggregate');
export const METRIC_MATCHER_COUNT: usize = offsetof<Metric>('matcherCount');
export const METRIC_MATCHER_LIST: usize = offsetof<Metric>('matcherList');
export const METRIC_LABEL_COUNT: usize = offsetof<Metric>('labelCount');
export const METRIC_LABEL_LIST: usize = offsetof<Metric>('labelList');
export const METRIC_CAPTURE: usize = offsetof<Metric>('capture');
export const METRIC_ABSENT_MATCH: usize = offsetof<Metric>('absentMatch');

export const AGGREGATE_SUM: u32 = 0;
export const AGGREGATE_MAX: u32 = 1;
export const AGGREGATE_LATEST_LABELS: u32 = 2; // the labels of the series with the largest value
export const AGGREGATE_NAMES: u32 = 3; // the distinct names of comma lists in the labels of all series
export const AGGREGATE_SET_NAMES: u32 = 4; // the same, of the series whose value is above 0

// The scan under way.
export const SCRAPE_UNUSABLE: usize = offsetof<MetricsScan>('unusable');
export const SCRAPE_LABEL_RANGES: usize = offsetof<MetricsScan>(); // TextRange × METRIC_LABELS of the line under way
export const SCRAPE_RESULTS: usize = SCRAPE_LABEL_RANGES + <usize>METRIC_LABELS * offsetof<TextRange>();

// A wanted metric's result.
export const SCRAPE_RESULT_VALUE: usize = offsetof<MetricResult>('value');
export const SCRAPE_RESULT_FOUND: usize = offsetof<MetricResult>('found');
export const SCRAPE_RESULT_LABELS: usize = offsetof<MetricResult>(); // TextRange × METRIC_LABELS in its capture
export const SCRAPE_RESULT_BYTES: usize = 128;
export const SCRAPE_RANGE_LENGTH: usize = offsetof<TextRange>('bytes');
export const SCRAPE_RANGE_BYTES: usize = offsetof<TextRange>();

export const SCRAPE_QUERY_LIST: usize = SCRAPE_RESULTS + <usize>QUERY_METRICS * SCRAPE_RESULT_BYTES;
export const SCRAPE_CAPTURES: usize = SCRAPE_QUERY_LIST + <usize>SCRAPE_QUERIES * QUERY_BYTES;
export const SCRAPE_LINE: usize = SCRAPE_CAPTURES + <usize>QUERY_LABEL_METRICS * SCRAPE_CAPTURE_BYTES;
export const SCRAPE_NAME_HASHES: usize = SCRAPE_LINE + SCRAPE_LINE_BYTES + 64; // vector loads may touch the 64
export const SCRAPE_BYTES: usize = SCRAPE_NAME_HASHES + ((<usize>SCRAPE_NAME_CELLS) << 3);
