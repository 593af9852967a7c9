// The table of data sets: a new one is a file of its own, a declaration and a line here.
#include <array>

#include "apps/datasets/datasets.hpp"

namespace hearsay {

DatasetEntry synthetic_digits_entry();
DatasetEntry mnist_entry();
DatasetEntry cifar10_entry();
DatasetEntry synthetic_images_entry();
DatasetEntry text_entry();
DatasetEntry words_entry();
DatasetEntry parallel_text_entry();
DatasetEntry csv_entry();
DatasetEntry npy_entry();
DatasetEntry image_folder_entry();

std::span<const DatasetEntry> datasets() {
  static const std::array table{
      synthetic_digits_entry(), mnist_entry(), cifar10_entry(), synthetic_images_entry(), text_entry(), words_entry(),
      parallel_text_entry(),    csv_entry(),   npy_entry(),     image_folder_entry()};
  return table;
}

}  // namespace hearsay
