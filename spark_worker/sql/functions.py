"""Functions of Spark's registry: those that users' SQL may call, and all the others.

Each refused function has what to use instead.

Each function of the registry is in one of the two, which a test compares with Spark's list: a new Spark adds none silently.
Allowed functions depend on their arguments alone, read no file and no environment, and take a time and memory in
proportion to their arguments; those whose argument sets a size are bounded by `spark_worker.sql.sizes`.
"""

GENERATORS = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
    }
)
"""Functions that make several rows of one; in the select list or in a lateral view."""

_OPERATORS = (
    "! % & * + - / < << <= <=> = == > >= >> >>> ^ | ~ and between in like ilike not or div mod when"
)
_AGGREGATES = """
any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or collect_list
collect_set collect_union corr count count_if covar_pop covar_samp every first first_value grouping grouping_id kurtosis last
last_value listagg max max_by mean median min min_by mode percentile percentile_approx percentile_cont percentile_disc
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev
stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance vector_avg vector_sum
"""
_NUMBERS = """
abs acos acosh asin asinh atan atan2 atanh bigint bin bit_count bit_get boolean bround cbrt ceil ceiling conv cos cosh cot
csc decimal degrees double e exp expm1 factorial float floor getbit hypot int isnan ln log log10 log1p log2
nanvl negative pi pmod positive pow power radians rint round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh
smallint sqrt tan tanh tinyint try_add try_divide try_mod try_multiply try_subtract width_bucket vector_cosine_similarity
vector_inner_product vector_l2_distance vector_norm
"""
_TEXTS = """
ascii base64 binary bit_length btrim char char_length character_length chr concat concat_ws contains crc32 date_format decode elt encode
endswith find_in_set format_number from_base32 from_unixtime hash hex hmac initcap instr is_valid_utf8 jaro_winkler_similarity lcase left
len length levenshtein locate lower lpad ltrim luhn_check make_valid_utf8 mask md5 octet_length overlay parse_url position
quote repeat replace right rpad rtrim sha sha1 sha2 soundex space split_part startswith string substr substring
substring_index to_base32 to_binary to_char to_number to_varchar translate trim try_parse_url try_to_binary try_to_number
try_url_decode try_validate_utf8 ucase unbase64 unhex upper url_decode url_encode validate_utf8 xxhash64
"""
_TIMES = """
add_months convert_timezone date date_add date_diff date_from_unix_date date_part date_sub date_trunc dateadd
datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_utc_timestamp hour last_day make_date
make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute month
monthname months_between next_day quarter second session_window time time_bucket time_diff time_from_micros
time_from_millis time_from_seconds time_to_micros time_to_millis time_to_seconds time_trunc timestamp timestamp_micros
timestamp_millis timestamp_nanos timestamp_seconds to_date to_time to_timestamp to_timestamp_ltz to_timestamp_ntz
to_unix_timestamp to_utc_timestamp trunc try_make_interval try_make_timestamp try_make_timestamp_ltz
try_make_timestamp_ntz try_to_date try_to_time try_to_timestamp unix_date unix_micros unix_millis unix_nanos unix_seconds
weekday weekofyear window window_time year
"""
_NESTED = """
array array_append array_compact array_contains array_distinct array_except array_insert array_intersect array_join array_max
array_min array_position array_prepend array_remove array_repeat array_size array_sort array_union arrays_overlap arrays_zip
cardinality element_at exists filter flatten forall get map map_concat map_contains_key map_entries map_filter
map_from_arrays map_from_entries map_keys map_values map_zip_with named_struct reverse sequence size slice sort_array struct
transform transform_keys transform_values try_element_at vector_normalize zip_with
"""
_FORMATS = """
from_csv from_json get_json_object is_valid_variant is_variant_null json_array_length json_object_keys parse_json to_csv
to_json try_parse_json try_variant_get typeof variant_get
"""
_NULLS = "cast coalesce equal_null greatest if ifnull isnotnull isnull least nullif nullifzero nvl nvl2 zeroifnull"

ALLOWED = GENERATORS.union(
    *(
        names.split()
        for names in (_OPERATORS, _AGGREGATES, _NUMBERS, _TEXTS, _TIMES, _NESTED, _FORMATS, _NULLS)
    )
)

_SCALAR_NAMES = """
approx_count_distinct ascii avg bit_length bool_and bool_or char_length character_length contains corr count count_if crc32
endswith every find_in_set hash instr isnotnull isnull length levenshtein locate md5 octet_length position sha sha1 sha2 some
startswith stddev sum try_sum variance xxhash64
"""
SCALAR = frozenset(" ".join((_NUMBERS, _TIMES, _SCALAR_NAMES)).split())
"""Functions whose result has a fixed size, whatever the size of their arguments."""

_REFUSED = {
    "It calls code that is not part of SQL; use a built-in function.": "java_method reflect try_reflect",
    "Use a column of the relation: a rebuild must give the same rows.": """
        current_catalog current_database current_date current_path current_schema current_time current_timestamp
        current_timezone current_user curdate input_file_block_length input_file_block_start input_file_name localtime
        localtimestamp now python_worker_logs session_user user version
    """,
    "Use a hash of the record, such as xxhash64(key): a rebuild must give the same rows.": """
        monotonically_increasing_id rand randn random randstr shuffle spark_partition_id uniform uuid
    """,
    "Use to_unix_timestamp, which needs a time.": "unix_timestamp",
    "Use like, contains, startswith, split_part or substring_index: a regular expression can run without end.": """
        regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr rlike
        sentences split str_to_map
    """,
    "Use JSON or CSV: the format reads files, or expands entities.": """
        from_avro from_protobuf from_xml schema_of_avro schema_of_xml to_avro to_protobuf to_xml xpath xpath_boolean
        xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string
    """,
    "Write the schema as a literal.": "schema_of_csv schema_of_json schema_of_variant schema_of_variant_agg",
    "Use concat, lpad and format_number: a width in the format can make a text of any size.": "format_string printf",
    "Use transform, filter or flatten: a step can double its value.": "aggregate reduce",
    "Use group by, or max_by and min_by.": """
        counter_diff cume_dist dense_rank lag lead measure nth_value ntile percent_rank rank row_number
    """,
    "Use approx_count_distinct or approx_percentile.": """
        approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate bitmap_and_agg bitmap_bit_position
        bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg count_min_sketch histogram_numeric
        hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
        kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint
        kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint kll_sketch_get_quantile_double
        kll_sketch_get_quantile_float kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
        kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float kll_sketch_to_string_bigint
        kll_sketch_to_string_double kll_sketch_to_string_float theta_difference theta_intersection theta_intersection_agg
        theta_sketch_agg theta_sketch_estimate theta_union theta_union_agg tuple_difference_double
        tuple_difference_integer tuple_difference_theta_double tuple_difference_theta_integer
        tuple_intersection_agg_double tuple_intersection_agg_integer tuple_intersection_double tuple_intersection_integer
        tuple_intersection_theta_double tuple_intersection_theta_integer tuple_sketch_agg_double tuple_sketch_agg_integer
        tuple_sketch_estimate_double tuple_sketch_estimate_integer tuple_sketch_summary_double
        tuple_sketch_summary_integer tuple_sketch_theta_double tuple_sketch_theta_integer tuple_union_agg_double
        tuple_union_agg_integer tuple_union_double tuple_union_integer tuple_union_theta_double tuple_union_theta_integer
    """,
    "Filter the rows, or use a case expression.": "assert_true raise_error",
    "Encrypt before sending: a key in a query is readable by everyone who may list it.": """
        aes_decrypt aes_encrypt try_aes_decrypt
    """,
    "Use a lateral view of explode, inline or json_tuple.": """
        range sql_keywords collations stack variant_explode variant_explode_outer
    """,
    "Use JSON text or variant_get.": """
        to_variant_object try_variant_array_append try_variant_insert try_variant_set variant_array_append variant_delete
        variant_insert variant_set variant_strip_nulls
    """,
    "Use lower or upper.": "collate collation",
    "Use numbers or structs.": "st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid",
}
REFUSED = {name: instead for instead, names in _REFUSED.items() for name in names.split()}

_BUFFERED = """
array_agg collect_list collect_set collect_union listagg median mode percentile percentile_cont percentile_disc string_agg
"""
BUFFERED = dict.fromkeys(
    _BUFFERED.split(),
    "It has the values of a group in memory: return the rows, or use approx_percentile or max_by.",
)
"""Aggregates of ALLOWED whose state grows with the data, which Spark cannot write to disk; with what to use instead."""

RANKS = frozenset(
    [
        "cume_dist",
        "dense_rank",
        "lag",
        "lead",
        "nth_value",
        "ntile",
        "percent_rank",
        "rank",
        "row_number",
    ]
)
"""Functions of REFUSED that only window functions call."""

AMBIENT_COLUMNS = frozenset(
    {
        "current_date",
        "current_time",
        "current_timestamp",
        "current_user",
        "grouping__id",
        "localtime",
        "session_user",
        "user",
    }
)
"""Names that Spark reads as functions where no relation has such a column (LiteralFunctionResolution)."""
